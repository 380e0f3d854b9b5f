package standalone

import (
	"context"
	"fmt"
	"os"
)

// acquireLock takes the lock file, so that this is the only instance.
func (s *Supervisor) acquireLock() (*os.File, error) {
	if err := checkRoot(s.cfg); err != nil {
		return nil, fmt.Errorf("check root: %w", err)
	}
	if err := os.MkdirAll(s.cfg.Paths.run, 0o711); err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	if err := checkOwner(s.cfg.Paths.run); err != nil {
		return nil, err
	}
	return lockFile(s.cfg.Paths.lock())
}

// releaseLock releases the lock file. If this instance left no state, it also removes the
// directory that acquireLock made.
func (s *Supervisor) releaseLock(lock *os.File) {
	p := s.cfg.Paths
	if !exists(p.hostState()) && isSameFile(lock, p.lock()) {
		_ = os.Remove(p.lock())
		_ = os.Remove(p.run) // fails if the directory is not empty
	}
	lock.Close()
}

// writeConfigs writes the configuration of runtime, network and agent, creates the cgroup, and
// adds the packet filter rules of the pod bridge before the bridge exists. It reports whether
// the runtime's configuration changed, so that a running containerd needs a restart.
func (s *Supervisor) writeConfigs(ctx context.Context, filter string) (runtimeChanged bool, err error) {
	p := s.cfg.Paths
	if err := p.makeDirs(); err != nil {
		return false, err
	}
	if err := saveHostState(p.hostState()); err != nil {
		return false, err
	}
	if err := s.finishRestore(); err != nil {
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
	if err := blockLocalnet(ctx, filter); err != nil {
		return false, err
	}
	if err := routeAPI(ctx, s.cfg, filter); err != nil {
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
	if err := writeRegistries(p, s.cfg.Registries); err != nil {
		return false, err
	}
	runtime := containerdConfig(p, s.cfg.Registries, s.cfg.SystemdCgroups, mayLowerOOMScore())
	return writeIfChanged(p.containerdConfig(), runtime, 0o600)
}
