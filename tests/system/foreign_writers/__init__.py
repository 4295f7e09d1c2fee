"""Tests with files of other programs: columns of every type and role are published bit for bit or refused."""
