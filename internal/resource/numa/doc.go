// Package numa has the parts of a machine that memory is near to in common: it asks those
// who give out CPUs, memory and devices where they could give a container what it wants,
// settles on one place that suits all, and has them give it out there.
package numa
