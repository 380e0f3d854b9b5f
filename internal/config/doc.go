// Package config turns command line, configuration file and drop-ins into one checked
// value. Everything is resolved here, once: no other package reads a flag, a file of
// settings or a feature gate.
package config
