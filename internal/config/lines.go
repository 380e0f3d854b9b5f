package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// lineIndex maps field paths to the line of their key.
type lineIndex map[string]int

// of is the line of the path or of the nearest path above it.
func (l lineIndex) of(path string) int {
	for ; path != ""; path = parentPath(path) {
		if line, ok := l[path]; ok {
			return line
		}
	}
	return l[""]
}

// indexLines walks the YAML tree for line numbers and for keys that are given twice.
// Values are not taken from here, because this YAML library differs from the one that
// the API's decoder uses, for example in what it takes for a boolean.
func indexLines(root *yaml.Node) (lines lineIndex, twice []problem) {
	lines = lineIndex{"": 1}
	var walk func(path string, n *yaml.Node)
	walk = func(path string, n *yaml.Node) {
		switch n.Kind {
		case yaml.DocumentNode:
			for _, child := range n.Content {
				walk(path, child)
			}
		case yaml.MappingNode:
			seen := map[string]bool{}
			for i := 0; i+1 < len(n.Content); i += 2 {
				key, value := n.Content[i], n.Content[i+1]
				below := join(path, key.Value)
				if seen[key.Value] {
					twice = append(twice, problem{below, fmt.Sprintf("is given twice, here and on line %d", lines[below])})
				}
				seen[key.Value] = true
				lines[below] = key.Line
				walk(below, value)
			}
		case yaml.SequenceNode:
			for i, child := range n.Content {
				below := fmt.Sprintf("%s[%d]", path, i)
				lines[below] = child.Line
				walk(below, child)
			}
		}
		// An alias is not followed: its own line serves for all below it, and a file
		// cannot make this walk long by aliases of aliases.
	}
	walk("", root)
	return lines, twice
}
