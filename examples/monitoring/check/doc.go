// Package check checks the rules and the dashboard beside it. It is a module of its own, as nothing else needs
// Prometheus' parser.
package check
