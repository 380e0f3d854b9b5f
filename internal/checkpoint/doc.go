// Package checkpoint keeps small pieces of state in files that are either whole or
// recognisably not: written atomically, checked when read.
package checkpoint
