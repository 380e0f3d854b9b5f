// Package require checks what a constructor is given.
package require

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Set returns an error that begins with the operation and names the values that are nil or
// the empty string. It returns nil where there are none.
func Set(operation string, values map[string]any) error {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if isMissing(reflect.ValueOf(values[name])) {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%s: missing %s", operation, strings.Join(missing, ", "))
}

// isMissing looks at kinds because the zero value of a struct may be a useful one.
func isMissing(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid: // a nil interface
		return true
	case reflect.Func, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.String:
		return v.IsZero()
	}
	return false
}
