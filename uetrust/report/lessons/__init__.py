"""What lessons need: exercises that check an answer, data, exam questions and slides."""
