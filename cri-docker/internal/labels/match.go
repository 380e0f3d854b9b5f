package labels

import "strings"

// MatchID says whether an ID has the prefix that a filter asks for.
func MatchID(id, filter string) bool { return strings.HasPrefix(id, filter) }

// MatchLabels says whether labels have all those of a selector.
func MatchLabels(labels, selector map[string]string) bool {
	for key, value := range selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}
