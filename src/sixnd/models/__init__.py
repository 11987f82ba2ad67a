"""Which models are there, and what is each made of?"""
