package bugreport

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/why"
)

// maxWhys limits the pods whose step graphs are read: those that are not running first.
const maxWhys = 500

// readPods adds the pods and their step graphs.
func (c *collector) readPods(ctx context.Context) {
	if c.deps.Node != nil {
		text, err := c.deps.Node(ctx)
		c.addJSON("node.json", text, err, c.redact.objects, "")
	}
	text, err := c.get(ctx, "/pods", "")
	var list v1.PodList
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	c.addJSON("pods.json", text, err, c.redact.objects, "")
	slices.SortStableFunc(list.Items, func(a, b v1.Pod) int { return settled(&a) - settled(&b) })
	c.readWhys(ctx, list.Items)
	text, err = c.get(ctx, "/why", "output=json")
	c.addJSON("why/node.json", text, err, c.redact.document, "")
}

// readWhys adds the step graphs of pods. It learns of all of them before it searches the texts of any.
func (c *collector) readWhys(ctx context.Context, pods []v1.Pod) {
	if more := len(pods) - maxWhys; more > 0 {
		c.archive.fail("why", fmt.Sprintf("not read: %d more pods", more))
		pods = pods[:maxWhys]
	}
	graphs, errs := make([][]byte, len(pods)), make([]error, len(pods))
	for i := range pods {
		if graphs[i], errs[i] = c.get(ctx, "/why/"+pods[i].Namespace+"/"+pods[i].Name, "output=json"); errs[i] == nil {
			graphs[i], errs[i] = c.why(graphs[i])
		}
	}
	for i := range pods {
		c.addJSON("why/"+pods[i].Namespace+"/"+pods[i].Name+".json", graphs[i], errs[i], c.redact.document, "")
	}
}

// settled orders pods: 0 for one that is not running.
func settled(p *v1.Pod) int {
	if p.Status.Phase == v1.PodRunning && p.DeletionTimestamp == nil {
		return 1
	}
	return 0
}

// plainOutput are texts of failed probes that no program has chosen.
var plainOutput = regexp.MustCompile(`^HTTP probe failed with statuscode: \d+$`)

// why drops the output of probes and hooks of a step graph.
func (c *collector) why(text []byte) ([]byte, error) {
	var r why.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("decode step graph: %w", err)
	}
	drop := func(kind why.Kind, text *string) {
		switch kind {
		case why.PostStart, why.PreStop, why.Startup, why.Liveness, why.Readiness:
			if *text != "" && !plainOutput.MatchString(*text) {
				c.redact.learn(*text)
				*text = redacted
			}
		}
	}
	if r.Cause.Step != nil {
		drop(r.Cause.Step.Kind, &r.Cause.Text)
	}
	for i := range r.Steps {
		drop(r.Steps[i].Kind, &r.Steps[i].Error)
	}
	out, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode step graph: %w", err)
	}
	return out, nil
}

// readKubelet adds the configuration and the health of the kubelet.
func (c *collector) readKubelet(ctx context.Context) {
	text, err := c.get(ctx, "/configz", "")
	c.addJSON("configz.json", text, err, c.configz, "")
	if text, err := c.get(ctx, "/flagz", ""); err != nil {
		c.fail("flagz.txt", err)
	} else {
		c.settings.fromFlags(string(text))
		c.add("flagz.txt", flags(string(text)), beginning, "")
	}
	for _, page := range []struct{ name, path, query string }{
		{"healthz.txt", "/healthz", "verbose"},
		{"statusz.txt", "/statusz", ""},
		{"goroutines.txt", "/debug/pprof/goroutine", "debug=1"},
	} {
		text, err := c.get(ctx, page.path, page.query)
		if err != nil {
			c.fail(page.name, err)
			continue
		}
		c.add(page.name, string(text), beginning, "")
	}
	for name, path := range map[string]string{"stats.json": "/stats/summary", "runningpods.json": "/runningpods/"} {
		text, err := c.get(ctx, path, "")
		c.addJSON(name, text, err, c.redact.document, "")
	}
}

// configz keeps the fields of a KubeletConfiguration, and no header of a URL.
func (c *collector) configz(text []byte) ([]byte, error) {
	var page struct {
		Kubelet kubeletconfig.KubeletConfiguration `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, fmt.Errorf("decode configz: %w", err)
	}
	c.settings.fromConfig(&page.Kubelet)
	for _, values := range page.Kubelet.StaticPodURLHeader {
		for i, v := range values {
			c.redact.learn(v)
			values[i] = redacted
		}
	}
	out, err := json.Marshal(page)
	if err != nil {
		return nil, fmt.Errorf("encode configz: %w", err)
	}
	return c.redact.document(out)
}

// flags drops the values of flags that have headers.
func flags(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if name, _, found := strings.Cut(line, ": "); found && strings.Contains(name, "header") {
			line = name + ": " + redacted + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// readMetrics adds every metrics endpoint.
func (c *collector) readMetrics(ctx context.Context) {
	for _, path := range []string{"/metrics", "/metrics/cadvisor", "/metrics/probes", "/metrics/resource", "/metrics/slis"} {
		name := "metrics/" + strings.ReplaceAll(strings.TrimPrefix(path[1:], "metrics/"), "metrics", "kubelet") + ".txt"
		text, err := c.get(ctx, path, "")
		if err != nil {
			c.fail(name, err)
			continue
		}
		c.add(name, string(text), beginning, "")
	}
}
