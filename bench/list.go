package bench

import (
	"fmt"
	"io"
	"strings"
)

// List writes the experiments with their rows.
func List(w io.Writer) {
	for _, e := range experiments {
		fmt.Fprintf(w, "%-20s usually %4.0f s per subject  %s\n", e.name, e.usual.Seconds(), strings.Join(e.rows, " "))
	}
}
