"""What trains and then uses what it trained."""
