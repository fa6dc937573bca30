"""Pure tensor maths: no framework, no registry, no state; one function for each equation of a paper."""
