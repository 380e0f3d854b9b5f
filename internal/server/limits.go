package server

import (
	"time"

	"swiftlet/internal/connlimit"
)

// limits bound the work that the HTTPS API does for clients it has not authorized yet. Authorized
// clients are not limited: their connections are not counted, and answers about their credentials are
// cached. A source from which an authorized request came within knownFor has knownFactor times as many
// connections and handshakes, and as many new ones per second.
type limits struct {
	// connections are those without an authorized request, of all sources and of one.
	connections, connectionsPerSource int
	// connectionRate is the number of new connections of a source per second.
	connectionRate rate
	// handshakes of a source that run at a time. Others wait.
	handshakes int
	// pendingBytes were read from connections without an authorized request and belong to requests
	// that are not complete. Beyond them only small requests are read.
	pendingBytes int64
	// reviews are the requests that wait for an answer of the API server about a token, of all
	// sources and of one.
	reviews, reviewsPerSource int
	// reviewRate is the number of reviews of tokens of unknown sources per second, knownReviewRate
	// that of tokens that were valid before or come from a known source. sourceReviewRate is that of
	// one source; tokens that were valid before do not count.
	reviewRate, knownReviewRate, sourceReviewRate rate
}

// rate is the limit of a token bucket.
type rate struct {
	perSecond float64
	burst     int
}

const (
	knownFor    = time.Hour
	knownFactor = 4
	// maxSources is how many sources are remembered. Those seen least recently are forgotten first.
	maxSources = 4096
	// budgetTTL is how long a source is remembered after its first request. All its buckets are full
	// again by then.
	budgetTTL = 5 * time.Minute
)

func defaultLimits() limits {
	return limits{
		connections: 512, connectionsPerSource: 128, connectionRate: rate{20, 100}, handshakes: 16,
		pendingBytes: 32 << 20,
		reviews:      64, reviewsPerSource: 16,
		reviewRate: rate{20, 40}, knownReviewRate: rate{50, 100}, sourceReviewRate: rate{5, 30},
	}
}

type source = connlimit.Source

// forConnections returns the limits of connections.
func (l limits) forConnections() connlimit.Limits {
	return connlimit.Limits{Connections: l.connections, PerSource: l.connectionsPerSource, Handshakes: l.handshakes, PendingBytes: l.pendingBytes}
}
