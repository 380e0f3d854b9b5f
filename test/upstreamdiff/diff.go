package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// items are the named things of one kind, with what is compared of each.
type items map[string]string

// difference is one thing that differs between a version of the reference and this project.
type difference struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	What   string `json:"what"`
	Theirs string `json:"theirs,omitempty"`
	Ours   string `json:"ours,omitempty"`
	Reason string `json:"reason,omitempty"` // why it is intended
}

// What a difference can be.
const (
	missing = "missing here"
	extra   = "only here"
	differs = "differs"
)

// kinds are the kinds of things that are compared, in the order of the output.
var kinds = []string{"flag", "field", "gate", "metric", "event", "endpoint", "node"}

// lists has the items of each kind.
type lists struct {
	items    map[string]items
	literals map[string]bool // all strings of the source code
}

// has reports whether an item exists. An item may end with anything.
func (l lists) has(kind, name string) (detail string, ok bool) {
	if detail, ok = l.items[kind][name]; ok {
		return detail, true
	}
	if kind != "event" && kind != "metric" {
		return "", false
	}
	if l.literals[name] {
		return "", true
	}
	for pattern := range l.items[kind] {
		prefix, open := strings.CutSuffix(pattern, anything)
		if start, isOpen := strings.CutSuffix(name, anything); open && strings.HasPrefix(name, prefix) || isOpen && strings.HasPrefix(pattern, start) {
			return "", true
		}
	}
	return "", false
}

func (u *upstream) lists() (*lists, error) {
	flags, err1 := u.flags()
	fields, err2 := u.configuration()
	node, err3 := u.node()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	// Other packages that the kubelet links record no events in it.
	own := u.below(kubernetes+"/pkg/kubelet", kubernetes+"/pkg/volume", kubernetes+"/cmd/kubelet", kubernetes+"/pkg/util")
	return &lists{items: map[string]items{
		"flag": flags, "field": fields, "gate": u.gates(), "metric": metrics(u.packages),
		"event": events(own), "endpoint": u.endpoints(), "node": node,
	}, literals: literals(own)}, nil
}

func (c *checkout) lists() (*lists, error) {
	fields, err1 := ourConfiguration()
	gates, err2 := c.gates()
	endpoints, err3 := c.endpoints()
	node, err4 := c.node()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	own := c.own()
	return &lists{items: map[string]items{
		"flag": ourFlags(), "field": fields, "gate": gates, "metric": metrics(c.packages),
		"event": events(own), "endpoint": endpoints, "node": node,
	}, literals: literals(own)}, nil
}

// compare lists the differences between the reference and this project, by kind and name. A detail
// that is not known on one side of a metric is not compared.
func compare(theirs, ours *lists) (found []difference) {
	for _, kind := range kinds {
		names := maps.Clone(theirs.items[kind])
		maps.Copy(names, ours.items[kind])
		for _, name := range slices.Sorted(maps.Keys(names)) {
			t, there := theirs.has(kind, name)
			o, here := ours.has(kind, name)
			d := difference{Kind: kind, Name: name, Theirs: t, Ours: o}
			switch {
			case !here:
				d.What = missing
			case !there:
				d.What = extra
			case t != o && (kind != "metric" || t != "" && o != ""):
				d.What = differs
			default:
				continue
			}
			found = append(found, d)
		}
	}
	return found
}
