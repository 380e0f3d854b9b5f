// Package oom reads in the kernel's log whom it killed for want of memory, and tells of
// those who were killed because the whole machine had none left.
package oom
