package standalone

import "slices"

// decideProxy decides whether Services are led to pods. That needs nftables, which kube-proxy's nftables mode is for, and
// no other kube-proxy on this machine: both would have the same table.
func (s *Supervisor) decideProxy(filter string) error {
	if s.cfg.API == nil {
		return nil
	}
	before, err := readHostState(s.cfg.Paths.hostState())
	if err != nil {
		return err
	}
	switch {
	case filter != backendNftables:
		s.progress("nothing leads to Services: nft is not installed")
	case slices.ContainsFunc(proxyTables, func(table string) bool { return slices.Contains(before.Tables, table) }):
		s.progress("nothing leads to Services: a kube-proxy of another cluster is on this machine")
	default:
		s.cfg.proxyServices = true
	}
	return nil
}
