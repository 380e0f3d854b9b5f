package page

import (
	"cmp"
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// statusText is the column STATUS of kubectl: what the pod is up to, in a word.
func statusText(p *v1.Pod) string {
	text := cmp.Or(p.Status.Reason, string(p.Status.Phase), string(v1.PodPending))
	if init := initText(p); init != "" {
		text = init
	} else {
		text = mainText(p, text)
	}
	switch {
	case p.DeletionTimestamp == nil:
		return text
	case pod.IsTerminal(p.Status.Phase):
		return text
	case p.Status.Reason == "NodeLost":
		return "Unknown"
	}
	return "Terminating"
}

// initText describes the first init container that holds the others up, "" if none does.
func initText(p *v1.Pod) string {
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		s := pod.FindStatus(&p.Status, c.Name)
		switch {
		case s == nil:
			if p.Status.InitContainerStatuses == nil {
				return "" // nothing is known of any
			}
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0,
			pod.IsSidecar(c) && s.Started != nil && *s.Started:
			continue
		case s.State.Terminated != nil:
			return "Init:" + exitText(s.State.Terminated)
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "PodInitializing":
			return "Init:" + s.State.Waiting.Reason
		}
		return fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
	}
	return ""
}

// mainText prefers what a container waits for or has ended with to the given text, that of the first one.
func mainText(p *v1.Pod, text string) string {
	running := false
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		switch s := p.Status.ContainerStatuses[i]; {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			text = s.State.Waiting.Reason
		case s.State.Terminated != nil:
			text = exitText(s.State.Terminated)
		case s.Ready && s.State.Running != nil:
			running = true
		}
	}
	if text != "Completed" || !running {
		return text
	}
	if isReady(p) {
		return "Running"
	}
	return "NotReady"
}

func exitText(t *v1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return "Signal:" + strconv.Itoa(int(t.Signal))
	}
	return "ExitCode:" + strconv.Itoa(int(t.ExitCode))
}

func isReady(p *v1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
