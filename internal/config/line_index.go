package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// lineIndex maps field paths to the line of their key.
type lineIndex map[string]int

// of returns the line of the path, or of its nearest parent.
func (l lineIndex) of(path string) int {
	for ; path != ""; path = parentPath(path) {
		if line, ok := l[path]; ok {
			return line
		}
	}
	return l[""]
}

// newLineIndex collects line numbers and duplicate keys of a YAML tree. It does not collect values,
// because this YAML library differs from the one of the API's decoder, for example in what it
// accepts as a boolean.
func newLineIndex(root *yaml.Node) (lines lineIndex, duplicates []problem) {
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
				field := join(path, key.Value)
				if seen[key.Value] {
					duplicates = append(duplicates, problem{field: field, message: fmt.Sprintf("is given twice, here and on line %d", lines[field]), class: duplicateField})
				}
				seen[key.Value] = true
				lines[field] = key.Line
				walk(field, value)
			}
		case yaml.SequenceNode:
			for i, child := range n.Content {
				field := fmt.Sprintf("%s[%d]", path, i)
				lines[field] = child.Line
				walk(field, child)
			}
		}
		// Aliases are not followed: the alias has the line of all its values, and nested aliases
		// could make the walk exponential.
	}
	walk("", root)
	return lines, duplicates
}
