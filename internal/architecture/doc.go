// Package architecture holds the rules about which package may import which, as tests.
package architecture
