"""Views over the log. They read entries and say what they amount to; nothing here writes, decides or waits."""
