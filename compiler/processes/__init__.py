"""Tasks in processes of their own: a task that crashes, hangs or takes too much memory ends alone."""
