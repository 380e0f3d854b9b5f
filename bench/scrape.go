package bench

import (
	"context"
	"time"
)

// endpoints are what monitoring reads of a node, by the name in their rows.
var endpoints = []struct{ name, path string }{
	{"metrics", "/metrics"},
	{"cadvisor", "/metrics/cadvisor"},
	{"resource", "/metrics/resource"},
	{"probes", "/metrics/probes"},
	{"summary", "/stats/summary"},
}

func scrapeRows() []string {
	var names []string
	for _, e := range endpoints {
		names = append(names, "scrape_"+e.name+"_time", "scrape_"+e.name+"_size", "scrape_"+e.name+"_cpu")
	}
	return names
}

// scrapes reads every endpoint a few times, without concurrency.
func scrapes(ctx context.Context, t *trial) error {
	for _, e := range endpoints {
		for range 3 {
			var body []byte
			var took time.Duration
			used, err := t.cluster.cpuOf(t.subject, func() (err error) {
				began := time.Now()
				body, err = t.kubelet().get(ctx, e.path)
				took = time.Since(began)
				return err
			})
			if err != nil {
				return err
			}
			t.record("scrape_"+e.name+"_time", milliseconds(took))
			t.record("scrape_"+e.name+"_size", float64(len(body))/1e3)
			t.record("scrape_"+e.name+"_cpu", milliseconds(used.agent))
		}
	}
	return nil
}
