package standalone

import (
	"fmt"
	"os"
)

// claim makes sure that this is the only instance.
func (s *Supervisor) claim() (*os.File, error) {
	if err := checkRoot(s.cfg); err != nil {
		return nil, fmt.Errorf("check root: %w", err)
	}
	if err := os.MkdirAll(s.cfg.Places.run, 0o711); err != nil {
		return nil, fmt.Errorf("make the run folder: %w", err)
	}
	return lockFile(s.cfg.Places.lock())
}

// release lets the next instance in. Where nothing came of this one, the folder that was
// made for the lock goes too.
func (s *Supervisor) release(lock *os.File) {
	p := s.cfg.Places
	if !exists(p.before()) && same(lock, p.lock()) {
		_ = os.Remove(p.lock())
		_ = os.Remove(p.run) // fails, as it should, where there is more in it
	}
	lock.Close()
}

// prepare writes every file the runtime and the agent start from, and guards the pod bridge
// before there is one. It reports whether the
// runtime's configuration differs from what a running one was started with.
func (s *Supervisor) prepare(filter string) (runtimeChanged bool, err error) {
	p := s.cfg.Places
	if err := p.make(); err != nil {
		return false, err
	}
	if err := rememberBefore(p.before()); err != nil {
		return false, err
	}
	if err := ensurePKI(p, s.cfg.NodeName, s.deps.Clock.Now()); err != nil {
		return false, err
	}
	if !s.cfg.SystemdCgroups {
		if err := makeCgroups(); err != nil {
			return false, err
		}
	}
	if err := blockLocalnet(filter); err != nil {
		return false, err
	}
	network, err := networkConfig(s.cfg.PodCIDR, p.addresses(), filter)
	if err != nil {
		return false, err
	}
	if _, err := writeIfChanged(p.networkFile(), network, 0o600); err != nil {
		return false, err
	}
	agent, err := agentConfig(s.cfg)
	if err != nil {
		return false, err
	}
	if _, err := writeIfChanged(p.AgentConfig(), agent, 0o600); err != nil {
		return false, err
	}
	runtime, err := containerdConfig(p, s.cfg.SystemdCgroups, mayLowerOOMScore())
	if err != nil {
		return false, err
	}
	return writeIfChanged(p.containerdConfig(), runtime, 0o600)
}
