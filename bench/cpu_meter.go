package bench

import "time"

// cpuUse is CPU time by who used it.
type cpuUse struct {
	machine time.Duration
	agent   time.Duration
	server  time.Duration // the API server
	runtime time.Duration // everything on the node but the agent: runtime, shims, containers
}

// cpuNow reads the counters. A subject without an agent has none of its time.
func (c *cluster) cpuNow(s subject) (cpuUse, error) {
	var use cpuUse
	var err error
	if use.machine, err = machineCPU(); err != nil {
		return use, err
	}
	server, err := c.bed.ControlPlane.APIServerPID()
	if err != nil {
		return use, err
	}
	if use.server, err = ProcessCPU(server); err != nil {
		return use, err
	}
	if use.runtime, err = s.node().CPU(); err != nil {
		return use, err
	}
	if k, ok := s.(*kubelet); ok {
		pid, err := k.box.KubeletPID()
		if err != nil {
			return use, err
		}
		if use.agent, err = ProcessCPU(pid); err != nil {
			return use, err
		}
		use.runtime -= use.agent
	}
	return use, nil
}

// cpuOf returns what was used while run ran.
func (c *cluster) cpuOf(s subject, run func() error) (cpuUse, error) {
	before, err := c.cpuNow(s)
	if err != nil {
		return cpuUse{}, err
	}
	if err := run(); err != nil {
		return cpuUse{}, err
	}
	after, err := c.cpuNow(s)
	return cpuUse{
		machine: after.machine - before.machine,
		agent:   after.agent - before.agent,
		server:  after.server - before.server,
		runtime: after.runtime - before.runtime,
	}, err
}
