package klogfmt

import (
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// Levels of klog as levels of slog: V(n) is -n. slog.LevelDebug is V(4).
const (
	V1 slog.Level = -1
	V2 slog.Level = -2
	V3 slog.Level = -3
)

// Module sets the verbosity of the source files whose names without .go match a pattern.
type Module struct {
	Pattern string
	Level   int
}

// Verbosity is the greatest V of records to log. Records of level Info and above are always logged.
// Methods are safe for concurrent use.
type Verbosity struct {
	level   atomic.Int32
	modules []Module
	highest int // level of any module
}

// NewVerbosity returns verbosity 0, and more for modules; the first match counts.
func NewVerbosity(modules ...Module) *Verbosity {
	v := &Verbosity{modules: modules}
	for _, m := range modules {
		v.highest = max(v.highest, m.Level)
	}
	return v
}

// Set changes the verbosity of all files.
func (v *Verbosity) Set(level int32) { v.level.Store(level) }

// enabled reports whether a record may have to be logged. enabledIn decides if only for some files.
func (v *Verbosity) enabled(l slog.Level) bool {
	return verbosity(l) <= max(int(v.level.Load()), v.highest)
}

func (v *Verbosity) enabledIn(file string, l slog.Level) bool {
	needed := verbosity(l)
	if needed <= int(v.level.Load()) {
		return true
	}
	name := strings.TrimSuffix(file, ".go")
	for _, m := range v.modules {
		if matches, _ := filepath.Match(m.Pattern, name); matches {
			return needed <= m.Level
		}
	}
	return false
}

// verbosity is the V of a level.
func verbosity(l slog.Level) int { return -int(max(min(l, slog.LevelInfo), -math.MaxInt32)) }
