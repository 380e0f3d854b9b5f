package config

import (
	"fmt"
	"strings"
)

// Origin is the source of a value. The zero Origin is the built-in default.
type Origin struct {
	File string
	Line int
	Flag string // without the dashes
}

func (o Origin) String() string {
	switch {
	case o.Flag != "":
		return "--" + o.Flag
	case o.Line > 0:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case o.File != "":
		return o.File
	}
	return "default"
}

// Origins maps field paths, such as evictionHard.memory.available or clusterDNS, to the origins of
// their values. A list has one origin; a map has one for each key.
type Origins map[string]Origin

// Of returns the origin of the path, or else of its nearest parent, or of its first child.
func (o Origins) Of(path string) Origin {
	for p := path; p != ""; p = parentPath(p) {
		if origin, ok := o[p]; ok {
			return origin
		}
	}
	var found Origin
	for p, origin := range o {
		if isChild(p, path) && (found == Origin{} || origin.File == found.File && origin.Line < found.Line) {
			found = origin
		}
	}
	return found
}

// set records the origin of a path and of all its children.
func (o Origins) set(path string, origin Origin) {
	o.clear(path)
	o[path] = origin
}

func (o Origins) clear(path string) {
	for p := range o {
		if p == path || isChild(p, path) {
			delete(o, p)
		}
	}
}

func isChild(path, parent string) bool {
	return len(path) > len(parent) && strings.HasPrefix(path, parent) && (path[len(parent)] == '.' || path[len(parent)] == '[')
}

// parentPath removes the last part. Keys of maps may contain dots, so the result may not be a path;
// looking it up finds nothing then.
func parentPath(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
