package why

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of a report about the node.
const (
	// maxPods is the number of pods that are listed.
	maxPods = 100
	// slowAfter is how long a step takes before it is called slow.
	slowAfter = 30 * time.Second
)

// NodeReport is what keeps a node and its pods from being up.
type NodeReport struct {
	Node     string    `json:"node"`
	At       time.Time `json:"at"`
	Sentence string    `json:"sentence"`
	// Conditions are those of the Node.
	Conditions []v1.NodeCondition `json:"conditions"`
	// Slow are the steps that have run for long, by kind.
	Slow []SlowSteps `json:"slow,omitempty"`
	// Pods are those that are not up, NotUp their number, and Known that of all pods.
	Pods  []PodSentence `json:"pods"`
	NotUp int           `json:"notUp"`
	Known int           `json:"known"`
}

// SlowSteps are steps of one kind that have run for long.
type SlowSteps struct {
	Kind    Kind          `json:"kind"`
	Count   int           `json:"count"`
	Longest time.Duration `json:"longest"`
}

// PodSentence is the sentence of one pod.
type PodSentence struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Sentence  string `json:"sentence"`
}

// Node describes a node by its conditions and by the pods that are tracked.
func (t *Tracker) Node(node *v1.Node, status func(types.UID) (v1.PodStatus, bool), now time.Time) NodeReport {
	n := NodeReport{Node: node.Name, At: now.UTC(), Conditions: node.Status.Conditions, Pods: []PodSentence{}}
	slow := map[Kind]*SlowSteps{}
	for _, uid := range t.Pods() {
		var of *v1.PodStatus
		if s, known := status(uid); known {
			of = &s
		}
		r, found := t.Report(uid, of, now)
		if !found {
			continue
		}
		n.Known++
		addSlow(slow, r.Steps, now)
		if !r.Cause.Up {
			n.Pods = append(n.Pods, PodSentence{r.Namespace, r.Name, r.Sentence})
		}
	}
	slices.SortFunc(n.Pods, func(a, b PodSentence) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	n.NotUp = len(n.Pods)
	n.Pods = n.Pods[:min(len(n.Pods), maxPods)]
	for _, s := range slow {
		n.Slow = append(n.Slow, *s)
	}
	slices.SortFunc(n.Slow, func(a, b SlowSteps) int {
		return cmp.Or(-cmp.Compare(a.Longest, b.Longest), cmp.Compare(a.Kind, b.Kind))
	})
	n.Sentence = n.cause().Sentence(n.At)
	return n
}

func addSlow(slow map[Kind]*SlowSteps, steps []StepReport, now time.Time) {
	for _, s := range steps {
		took := now.Sub(s.Began)
		if s.State != running && s.State != queued || took < slowAfter {
			continue
		}
		if slow[s.Kind] == nil {
			slow[s.Kind] = &SlowSteps{Kind: s.Kind}
		}
		slow[s.Kind].Count++
		slow[s.Kind].Longest = max(slow[s.Kind].Longest, took.Truncate(time.Second))
	}
}

// pressures are the conditions of a node that are bad when they are True.
var pressures = map[v1.NodeConditionType]words{
	v1.NodeMemoryPressure:     {"has too little memory", "the pods that use most memory, or evictionHard of the node"},
	v1.NodeDiskPressure:       {"has too little disk space", "what fills its disk, or evictionHard of the node"},
	v1.NodePIDPressure:        {"has too few process IDs", "the pods with most processes, or podPidsLimit of the node"},
	v1.NodeNetworkUnavailable: {"has no network route yet", "the network plugin or the cloud's route controller"},
}

// First is the first line for people.
func (n NodeReport) First() string { return n.Sentence }

func (n NodeReport) cause() Cause {
	c := Cause{Up: true, Where: "node " + n.Node, What: "is not known by the API server yet", Fix: "the API server, or the node's connection to it"}
	for _, condition := range n.Conditions {
		words, pressure := pressures[condition.Type]
		since := condition.LastTransitionTime.Time
		switch {
		case condition.Type == v1.NodeReady && condition.Status != v1.ConditionTrue:
			return Cause{Where: c.Where, What: "is not ready", Text: oneLine(condition.Message), Since: since, Fix: "what the message names"}
		case pressure && condition.Status == v1.ConditionTrue:
			return Cause{Where: c.Where, What: words.what, Text: oneLine(condition.Message), Since: since, Fix: words.fix}
		case condition.Type == v1.NodeReady:
			c.What, c.Since, c.Fix = "is ready", since, ""
		}
	}
	if n.NotUp > 0 {
		c.What += fmt.Sprintf(", but %d of its %d pods are not up", n.NotUp, n.Known)
	}
	if len(n.Slow) > 0 {
		c.What += fmt.Sprintf("; slowest step: %s, for %s in %d pods", n.Slow[0].Kind, n.Slow[0].Longest, n.Slow[0].Count)
	}
	return c
}

// Write writes the report for people.
func (n NodeReport) Write(w io.Writer, zone *time.Location) error {
	at := n.At.In(zone)
	if _, err := fmt.Fprintf(w, "%s\n\n", n.cause().Sentence(at)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range n.Conditions {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", plain(string(c.Type)), plain(string(c.Status)), clockTime(c.LastTransitionTime.Time, at), oneLine(c.Message))
	}
	for _, s := range n.Slow {
		fmt.Fprintf(table, "slow: %s\t%d\t%s\t\n", s.Kind, s.Count, s.Longest)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range n.Pods {
		if _, err := fmt.Fprintln(w, plain(p.Namespace+"/"+p.Name+": "+p.Sentence)); err != nil {
			return err
		}
	}
	if more := n.NotUp - len(n.Pods); more > 0 {
		_, err := fmt.Fprintf(w, "and %d more pods\n", more)
		return err
	}
	return nil
}
