"""What reaches the disk: the rules file, and the removal of secrets on the way there."""
