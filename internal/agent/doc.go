// Package agent connects the parts of the node agent. It decides nothing: each file makes
// a few parts from the configuration and hands them to each other.
package agent
