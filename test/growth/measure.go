package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

const header = `pods  burst: CPU ms, allocations  one more: CPU ms, allocations, latency ms  its end: CPU ms  idle a minute: CPU ms, allocations  heap, stacks, anonymous, file kB  goroutines  scrape: CPU ms, kB  a minute with an open page: CPU ms, anonymous kB, sent kB`

// row is what was measured at one number of pods.
type row struct {
	pods              int
	burst, start, end use // per pod
	latency           time.Duration
	idle              use // per minute
	settled           use
	scrape            time.Duration
	scrapeBytes       int64
	open              use // per minute, with an open page
	openBytes         int64
}

func (r row) String() string {
	return fmt.Sprintf("%4d  %.2f, %d  %.2f, %d, %.1f  %.2f  %.1f, %d  %d, %d, %d, %d  %d  %.1f, %d  %.1f, %d, %d",
		r.pods, milliseconds(r.burst.CPU), r.burst.Allocations, milliseconds(r.start.CPU), r.start.Allocations, milliseconds(r.latency),
		milliseconds(r.end.CPU), milliseconds(r.idle.CPU), r.idle.Allocations, r.settled.Heap>>10, r.settled.Stacks>>10, r.settled.Anonymous>>10, r.settled.File>>10,
		r.settled.Goroutines, milliseconds(r.scrape), r.scrapeBytes>>10,
		milliseconds(r.open.CPU), r.open.Anonymous>>10, r.openBytes>>10)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quiet is the time after which pods have settled.
const quiet = 5 * time.Second

// measure starts pods until there are so many, and measures.
func (n *node) measure(ctx context.Context, number, single int, idle time.Duration) (r row, err error) {
	r.pods = number
	added := 0
	if err := n.profile("profile", fmt.Sprintf("burst-%d.cpu", number)); err != nil {
		return r, err
	}
	r.burst, err = n.cost(func() error {
		added, err = n.grow(ctx, number)
		return err
	})
	if err != nil {
		return r, err
	}
	r.burst = r.burst.per(added)
	if err := n.measureSingle(ctx, &r, single); err != nil {
		return r, err
	}
	if err := n.measureSettled(ctx, &r, idle); err != nil {
		return r, err
	}
	if err := n.measureScrape(&r); err != nil {
		return r, err
	}
	return r, n.measurePage(ctx, &r, idle)
}

// measureSingle starts and ends pods one after the other.
func (n *node) measureSingle(ctx context.Context, r *row, count int) error {
	if err := n.pause(ctx, quiet); err != nil {
		return err
	}
	if err := n.profile("profile", fmt.Sprintf("start-%d.cpu", r.pods)); err != nil {
		return err
	}
	var took []time.Duration
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("single-%d-%d", r.pods, i))
	}
	var err error
	r.start, err = n.cost(func() error {
		for _, name := range names {
			began := time.Now()
			if err := n.create(name); err != nil {
				return err
			}
			if err := n.awaitReady(ctx, map[string]bool{name: true}); err != nil {
				return err
			}
			took = append(took, time.Since(began))
		}
		return n.pause(ctx, time.Second) // the watch sends what was written
	})
	if err != nil {
		return err
	}
	slices.Sort(took)
	r.start, r.latency = r.start.per(count), took[len(took)/2]
	if err := n.profile("profile", fmt.Sprintf("end-%d.cpu", r.pods)); err != nil {
		return err
	}
	r.end, err = n.cost(func() error {
		for _, name := range names {
			if err := n.end(ctx, name); err != nil {
				return err
			}
		}
		return n.pause(ctx, time.Second)
	})
	r.end = r.end.per(count)
	return err
}

// measureSettled leaves the node alone.
func (n *node) measureSettled(ctx context.Context, r *row, idle time.Duration) error {
	err := n.pause(ctx, quiet)
	if err != nil {
		return err
	}
	if err := n.profile("profile", fmt.Sprintf("idle-%d.cpu", r.pods)); err != nil {
		return err
	}
	if r.idle, err = n.cost(func() error { return n.pause(ctx, idle) }); err != nil {
		return err
	}
	r.idle.CPU = time.Duration(float64(r.idle.CPU) / idle.Minutes())
	r.idle.Allocations = uint64(float64(r.idle.Allocations) / idle.Minutes())
	before, err := n.ask("use")
	if err != nil {
		return err
	}
	if r.settled, err = n.ask("collect"); err != nil {
		return err
	}
	r.settled.Anonymous, r.settled.File = before.Anonymous, before.File // as the idle agent has it, without a collection that no one asks for
	return n.profile("heap", fmt.Sprintf("settled-%d.heap", r.pods))
}

// measureScrape reads the metrics several times.
func (n *node) measureScrape(r *row) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	if err := n.profile("profile", fmt.Sprintf("scrape-%d.cpu", r.pods)); err != nil {
		return err
	}
	const times = 10
	used, err := n.cost(func() error {
		for range times {
			for _, path := range []string{"/metrics", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes"} {
				size, err := get(client, "https://"+n.address()+":10250"+path)
				if err != nil {
					return err
				}
				r.scrapeBytes += size
			}
		}
		return nil
	})
	r.scrape, r.scrapeBytes = used.CPU/times, r.scrapeBytes/times
	if err == nil {
		err = n.profile("profile", "")
	}
	return err
}

func get(client *http.Client, url string) (int64, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer growth")
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("read %s: %s", url, answer.Status)
	}
	return io.Copy(io.Discard, answer.Body)
}

// cost returns what the agent uses while act runs.
func (n *node) cost(act func() error) (use, error) {
	before, err := n.ask("use")
	if err != nil {
		return use{}, err
	}
	if err := act(); err != nil {
		return use{}, err
	}
	after, err := n.ask("use")
	return use{CPU: after.CPU - before.CPU, Allocations: after.Allocations - before.Allocations}, err
}

func (u use) per(count int) use {
	if count == 0 {
		return use{}
	}
	return use{CPU: u.CPU / time.Duration(count), Allocations: u.Allocations / uint64(count)}
}
