package config

import (
	"fmt"
	"strings"
)

// Origin is where a value came from. The zero Origin is the built-in default.
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

// Origins maps field paths, as in evictionHard.memory.available or clusterDNS, to where
// their value came from. A list has one origin; a map has one for each key.
type Origins map[string]Origin

// Of is the origin of the path, or else of the nearest path above or the first below it:
// good enough to lead a reader to the right line.
func (o Origins) Of(path string) Origin {
	for p := path; p != ""; p = parentPath(p) {
		if origin, ok := o[p]; ok {
			return origin
		}
	}
	var found Origin
	for p, origin := range o {
		if below(p, path) && (found == Origin{} || origin.File == found.File && origin.Line < found.Line) {
			found = origin
		}
	}
	return found
}

// set records that path now has this origin, and that nothing below it has another.
func (o Origins) set(path string, origin Origin) {
	o.forget(path)
	o[path] = origin
}

func (o Origins) forget(path string) {
	for p := range o {
		if p == path || below(p, path) {
			delete(o, p)
		}
	}
}

func below(path, parent string) bool {
	return len(path) > len(parent) && strings.HasPrefix(path, parent) && (path[len(parent)] == '.' || path[len(parent)] == '[')
}

// parentPath cuts the last part. Keys of maps may hold dots themselves, so a "parent" may
// be no path at all; looking it up then finds nothing, which is what is wanted.
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
