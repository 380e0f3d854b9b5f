// Package critools holds the tools of the CRI's own project against a runtime that an agent
// works on: critest, the tests of a runtime, and crictl, by which people look into one.
// Neither may harm the agent's pods, nor the agent what they make. `make critest` runs it.
package critools
