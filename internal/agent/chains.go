package agent

import "swiftlet/internal/iptables"

// makeChains makes what keeps the chains of iptables that other programs look for.
func (a *Agent) makeChains() error {
	if !*a.cfg.Kubelet.MakeIPTablesUtilChains {
		return nil
	}
	k, err := iptables.New(iptables.Deps{Clock: a.clock, Log: a.log})
	if err != nil {
		return err
	}
	a.machine.parts = append(a.machine.parts, part{"iptables", k.Run})
	return nil
}
