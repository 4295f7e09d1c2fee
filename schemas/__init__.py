"""What the data is: release specification, roles, expectation suites. Importing it costs nothing."""
