// Package critools runs critest and crictl, the tools of the cri-tools project, on a runtime that
// an agent uses. They must not affect the agent's pods, and the agent must not affect their
// containers. `make critest` runs it.
package critools
