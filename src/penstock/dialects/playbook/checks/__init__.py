"""What is checked in a playbook once it is read: the flow of tokens, names in expressions, and tasks against their tools."""
