// Package bugreport writes the archive of `swiftlet report`: what someone who looks for a fault of a node asks
// for first, without secrets. It only reads.
//
// Of API objects it keeps the fields that are listed. What it drops of them, such as the values of environment
// variables, it also removes from logs and all other texts.
package bugreport
