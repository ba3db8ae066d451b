"""What the leading scheduler does, one step a module. A step takes the time and says how much it found to do."""
