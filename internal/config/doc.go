// Package config loads and validates the command line, the configuration file and its drop-ins. No
// other package reads a flag, a configuration file or the table of feature gates.
package config
