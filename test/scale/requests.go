package scale

import (
	"strings"
	"time"
)

// requests are requests of nodes in the order of the audit log.
type requests []request

// isHeartbeat reports whether a request is sent from time to time by a node that has nothing to do.
func (r request) isHeartbeat() bool {
	switch r.what {
	case "update leases", "patch nodes/status", "get leases":
		return true
	}
	return false
}

// isWatch reports whether a request begins a watch.
func (r request) isWatch() bool {
	return strings.HasPrefix(r.what, "watch ") || strings.HasPrefix(r.what, "watch-list ")
}

// isList reports whether the API server has sent all objects.
func (r request) isList() bool {
	return strings.HasPrefix(r.what, "list ") || strings.HasPrefix(r.what, "watch-list ")
}

// where returns the requests that meet a condition.
func (all requests) where(keep func(request) bool) requests {
	var kept requests
	for _, r := range all {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// withoutHeartbeats returns the requests that something has caused.
func (all requests) withoutHeartbeats() requests {
	return all.where(func(r request) bool { return !r.isHeartbeat() })
}

// byKind counts requests by verb and resource, divided by n.
func (all requests) byKind(n int) map[string]float64 {
	counts := map[string]float64{}
	for _, r := range all {
		counts[r.what] += 1 / float64(n)
	}
	return counts
}

// peak is the largest number of requests within one second of the clock.
func (all requests) peak() int {
	counts := map[int64]int{}
	most := 0
	for _, r := range all {
		counts[r.at.Unix()]++
		most = max(most, counts[r.at.Unix()])
	}
	return most
}

// failed reports whether a request was answered with an error, other than that an object does not exist or
// exists already.
func (r request) failed() bool { return r.code >= 400 && r.code != 404 && r.code != 409 }

// last is when the last request was answered; zero if there is none.
func (all requests) last() time.Time {
	var last time.Time
	for _, r := range all {
		if r.at.After(last) {
			last = r.at
		}
	}
	return last
}
