package device

import (
	"fmt"
	"slices"
)

// supply are the devices that a container may be given, in the order in which they are.
type supply struct {
	// reusable were given to init containers of the same pod that have ended by then.
	reusable []string
	// aligned are free and on the NUMA nodes that the container is to have, unaligned are
	// free and on others, and indifferent belong to none.
	aligned, unaligned, indifferent []string
}

// prefer asks the plugin which of the available devices it would give, must among them.
type prefer func(available, must []string, size int) ([]string, error)

// choose picks as many devices of the resource as wanted.
func (s supply) choose(resource string, want int, ask prefer) ([]string, error) {
	c := choice{want: want}
	if c.take(s.reusable) {
		return c.taken, nil
	}
	free := slices.Concat(s.aligned, s.unaligned, s.indifferent)
	if missing := want - len(c.taken); len(free) < missing {
		return nil, fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d", resource, missing, len(free))
	}
	among := free
	if want-len(c.taken) < len(s.aligned) {
		among = s.aligned
	} else if c.take(s.aligned) {
		return c.taken, nil
	}
	if ask != nil {
		preferred, err := ask(union(among, c.taken), slices.Clone(c.taken), want)
		if err != nil {
			return nil, err
		}
		if c.take(intersection(preferred, among)) {
			return c.taken, nil
		}
	}
	c.take(s.aligned)
	c.take(s.unaligned)
	c.take(s.indifferent)
	return c.taken, nil
}

// choice is a set of devices in the making.
type choice struct {
	want  int
	taken []string
}

// take adds devices until there are enough, and reports whether there are.
func (c *choice) take(from []string) bool {
	for _, id := range from {
		if len(c.taken) == c.want {
			break
		}
		if !slices.Contains(c.taken, id) {
			c.taken = append(c.taken, id)
		}
	}
	return len(c.taken) == c.want
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func intersection(a, b []string) []string {
	var both []string
	for _, id := range a {
		if slices.Contains(b, id) {
			both = append(both, id)
		}
	}
	return both
}
