package device

import (
	"fmt"
	"slices"
)

// candidates are the devices that a container may get, in order of preference.
type candidates struct {
	// reusable are those of init containers of the same pod that have ended by then.
	reusable []string
	// aligned are free and on the NUMA nodes of the container's affinity, unaligned are free
	// and on others, and indifferent belong to no NUMA node.
	aligned, unaligned, indifferent []string
}

// preferFunc gets the plugin's preferred allocation among the available devices, including must.
type preferFunc func(available, must []string, size int) ([]string, error)

// choose selects count devices of the resource.
func (s candidates) choose(resource string, count int, prefer preferFunc) ([]string, error) {
	c := choice{count: count, has: map[string]bool{}}
	if c.take(s.reusable) {
		return c.taken, nil
	}
	free := slices.Concat(s.aligned, s.unaligned, s.indifferent)
	if missing := count - len(c.taken); len(free) < missing {
		return nil, fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d", resource, missing, len(free))
	}
	from := free
	if count-len(c.taken) < len(s.aligned) {
		from = s.aligned
	} else if c.take(s.aligned) {
		return c.taken, nil
	}
	if prefer != nil {
		preferred, err := prefer(union(from, c.taken), slices.Clone(c.taken), count)
		if err != nil {
			return nil, err
		}
		if c.take(intersection(preferred, from)) {
			return c.taken, nil
		}
	}
	c.take(s.aligned)
	c.take(s.unaligned)
	c.take(s.indifferent)
	return c.taken, nil
}

// choice is an incomplete selection of devices.
type choice struct {
	count int
	taken []string
	has   map[string]bool // those taken
}

// take adds devices until there are count, and reports whether there are.
func (c *choice) take(from []string) bool {
	for _, id := range from {
		if len(c.taken) == c.count {
			break
		}
		if !c.has[id] {
			c.has[id] = true
			c.taken = append(c.taken, id)
		}
	}
	return len(c.taken) == c.count
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func intersection(a, b []string) []string {
	in := map[string]bool{}
	for _, id := range b {
		in[id] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(id string) bool { return !in[id] })
}
