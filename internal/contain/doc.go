// Package contain limits the harm of work for one pod: a panic becomes an error of that work, and a
// call that hangs is abandoned, so that its owner can go on.
package contain
