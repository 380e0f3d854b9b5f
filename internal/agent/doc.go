// Package agent connects the parts of the node agent. It is wiring only: each file builds a
// few parts from the configuration and from parts built before.
package agent
