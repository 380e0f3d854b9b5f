package main

import (
	"context"
	"strings"
)

// upstream is a version of the reference kubelet as source code.
type upstream struct {
	*tree
	version  string
	packages []*goPackage // those that the kubelet is built from
}

func openUpstream(ctx context.Context, version string) (*upstream, error) {
	m, err := newModules(ctx, version)
	if err != nil {
		return nil, err
	}
	u := &upstream{tree: newTree(m.directory), version: version}
	u.packages, err = u.reach(kubernetes + "/cmd/kubelet")
	return u, err
}

// below returns the packages with one of the path prefixes.
func (u *upstream) below(prefixes ...string) (found []*goPackage) {
	for _, p := range u.packages {
		for _, prefix := range prefixes {
			if p.path == prefix || strings.HasPrefix(p.path, prefix+"/") {
				found = append(found, p)
				break
			}
		}
	}
	return found
}
