package standalone

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// colour is a rendition of a terminal.
type colour string

const (
	green  colour = "32"
	yellow colour = "33"
	red    colour = "31"
	faint  colour = "2"
)

func (c colour) paint(text string) string { return "\x1b[" + string(c) + "m" + text + "\x1b[0m" }

// colourOf is that of a pod's status: red for what has failed, yellow for what is not up yet.
func colourOf(p *v1.Pod) colour {
	status := podStatusText(p)
	switch {
	case p.DeletionTimestamp != nil:
		return yellow
	case p.Status.Phase == v1.PodSucceeded:
		return faint
	case p.Status.Phase == v1.PodFailed:
		return red
	case status == string(v1.PodRunning):
		if ready, _ := readyAndRestarts(p); isAll(ready) {
			return green
		}
		return yellow
	case status == string(v1.PodPending) || awaitedDevice(p) != "" || status == "ContainerCreating":
		return yellow
	}
	return red // a container waits for its next start, or has ended
}

// isAll reports whether in "ready/total" both are the same.
func isAll(ready string) bool {
	up, all, _ := strings.Cut(ready, "/")
	return up == all
}

// paintAt paints the word at an offset of a row.
func paintAt(row string, from int, c colour) string {
	if from < 0 || from >= len(row) {
		return row
	}
	to := from + strings.IndexByte(row[from:]+" ", ' ')
	return row[:from] + c.paint(row[from:to]) + row[to:]
}
