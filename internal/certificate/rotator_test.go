package certificate

import (
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// after lets that much time pass, and everything come to rest.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestRenewsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		k := keep(t, s, Config{Renew: true})
		after(time.Hour)
		if n := len(s.requests()); n != 0 {
			t.Fatalf("%d requests before anything was wanted", n)
		}
		k.Want(nodeRequest("n"))
		after(10 * time.Second)
		first := k.Current()
		if first == nil {
			t.Fatal("no certificate:", k.said())
		}
		<-k.Ready()
		after(47 * time.Minute)
		if k.Current() != first {
			t.Error("renewed before 80 % of its time")
		}
		after(2 * time.Minute)
		second := k.Current()
		if second == first {
			t.Fatal("not renewed after 80 % of its time")
		}
		stored, err := k.store.Current()
		if err != nil || !stored.Leaf.Equal(second.Leaf) {
			t.Errorf("stored is another: %v", err)
		}
		if k.changed != 2 || len(k.lived) != 1 || k.lived[0].Round(time.Minute) != 48*time.Minute || k.failed != 0 {
			t.Errorf("told of %d changes, %v lived, %d failures", k.changed, k.lived, k.failed)
		}
		if n := len(s.requests()); n != 2 || !slices.Equal(k.dialed, []int{1}) {
			t.Errorf("of %d requests %v were made without a certificate, want the first of two", n, k.dialed)
		}
	})
}

func TestNotRenewedUnlessAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		k := keep(t, s, Config{})
		k.Want(nodeRequest("n"))
		after(59 * time.Minute)
		if n := len(s.requests()); n != 1 {
			t.Errorf("%d requests while it was valid", n)
		}
		after(2 * time.Minute)
		if n := len(s.requests()); n != 2 || k.valid() == nil {
			t.Errorf("%d requests when it had expired: %s", n, k.describe())
		}
		if !slices.Equal(k.dialed, []int{1, 2}) {
			t.Errorf("requests %v were made without a certificate, want both: it had expired", k.dialed)
		}
	})
}

// The counts are those of one hour: 2, 4, 8 … seconds apart, then at the longest pause.
func TestFailuresAreNotHot(t *testing.T) {
	for decision, c := range map[string]struct {
		min, max int
		says     string
		within   time.Duration // that it recovers
		// People are told for the first time between these.
		quiet, told time.Duration
	}{
		"fail": {100, 115, "connection refused", 34 * time.Second, troubleAfter - time.Second, troubleAfter + 36*time.Second},
		"deny": {15, 20, "denied, reason: Stranger, message: who is that", 6 * time.Minute, 0, time.Second},
		"wait": {4, 5, "certificate request csr-1", 21 * time.Minute, approvalLimit - time.Second, approvalLimit + time.Second},
	} {
		t.Run(decision, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSigner(t)
				s.set(decision)
				k := keep(t, s, Config{Renew: true})
				k.Want(nodeRequest("n"))
				after(c.quiet)
				if told := k.told(); c.quiet > 0 && len(told) != 0 {
					t.Errorf("people are told at once: %q", told)
				}
				after(c.told - c.quiet)
				if told := k.told(); len(told) != 1 || !strings.HasPrefix(told[0], "test certificate: ") || !strings.Contains(told[0], c.says) {
					t.Errorf("people are told %q after %s", told, c.told)
				}
				after(time.Hour - c.told)
				if n := len(k.told()); n < 3 || n > 12 {
					t.Errorf("people are told %d times in an hour", n)
				}
				if n := len(s.requests()); n < c.min || n > c.max {
					t.Errorf("%d requests in an hour, want %d to %d", n, c.min, c.max)
				}
				if said := k.said(); !strings.Contains(said, c.says) || !strings.Contains(said, "current=none") {
					t.Errorf("log: %s", said)
				}
				s.set("approve")
				after(c.within)
				if k.Current() == nil {
					t.Error("not recovered")
				}
			})
		})
	}
}

// A signer may date certificates back by more than they live.
func TestShortLivedIsNotHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.life, s.backdate = 30*time.Second, 5*time.Minute
		k := keep(t, s, Config{Renew: true})
		k.Want(nodeRequest("n"))
		for range 20 {
			after(15 * time.Second)
			if k.valid() == nil {
				t.Fatal("it expired")
			}
		}
		if n := len(s.requests()); n < 10 || n > 21 {
			t.Errorf("%d requests in 5 minutes", n)
		}
	})
}

func TestIssuedIsNotWhatWasWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.edit = func(c *x509.Certificate) { c.IPAddresses = nil }
		k := keep(t, s, Config{Renew: true})
		request := nodeRequest("n")
		request.IPAddresses = []net.IP{net.ParseIP("10.0.0.1")}
		k.Want(request)
		after(time.Hour)
		if n := len(s.requests()); n < 10 || n > 20 {
			t.Errorf("%d requests in an hour", n)
		}
		if k.Current() == nil || !strings.Contains(k.said(), "address 10.0.0.1 is missing") {
			t.Error(k.said())
		}
	})
}

func TestWantChangesWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.set("wait")
		k := keep(t, s, Config{Renew: true})
		k.Want(nodeRequest("old"))
		after(10 * time.Second)
		s.set("approve")
		k.Want(nodeRequest("new"))
		after(10 * time.Second)
		if c := k.Current(); c == nil || c.Leaf.Subject.CommonName != "system:node:new" {
			t.Errorf("certificate %v: %s", c, k.said())
		}
		k.Want(nodeRequest("new"))
		after(10 * time.Second)
		if n := len(s.requests()); n != 2 || k.failed != 0 {
			t.Errorf("%d requests, %d failures", n, k.failed)
		}
	})
}

// A request that was made with a certificate cannot be followed when that has expired.
func TestExpiresWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		k := keep(t, s, Config{Renew: true})
		k.Want(nodeRequest("n"))
		after(10 * time.Second)
		s.set("wait")
		after(59 * time.Minute)
		s.set("approve")
		after(2 * time.Minute)
		if !strings.Contains(k.said(), "certificate request csr-2: neither approved nor denied in 12m0s") {
			t.Error(k.said())
		}
		if k.valid() == nil {
			t.Fatal("not recovered: ", k.said())
		}
		if last := len(s.requests()); !slices.Contains(k.dialed, last) {
			t.Errorf("requests %v were made without a certificate, want the last, %d: it had expired", k.dialed, last)
		}
	})
}

func TestReplacedFileIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		k := keep(t, s, Config{Renew: true})
		k.Want(nodeRequest("n"))
		after(10 * time.Second)
		s.set("fail")
		after(2 * time.Hour)
		cert, key := s.pair("n", time.Hour)
		if _, err := k.store.Update(cert, key); err != nil {
			t.Fatal(err)
		}
		after(retryMax + retryMax/10)
		if k.valid() == nil || k.changed != 2 {
			t.Errorf("%s, %d changes", k.describe(), k.changed)
		}
	})
}

// asleep is the clock of a machine that was asleep: the calendar went on, timers did not.
type asleep struct {
	clock.RealClock
	missed atomic.Int64
}

func (a *asleep) Now() time.Time { return time.Now().Add(time.Duration(a.missed.Load())) }

func TestRefusedHasItLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		k := keep(t, s, Config{Renew: true})
		k.Want(nodeRequest("n"))
		after(time.Second)
		k.Refused()
		after(time.Second)
		if n := len(s.requests()); n != 1 {
			t.Errorf("%d requests: a refusal alone is no reason for another", n)
		}

		cert, key := s.pair("n", time.Hour)
		if _, err := k.store.Update(cert, key); err != nil {
			t.Fatal(err)
		}
		k.Refused()
		after(time.Second)
		if k.changed != 2 || len(s.requests()) != 1 {
			t.Errorf("the replaced certificate is not in use: %d changes, %d requests", k.changed, len(s.requests()))
		}

		s.set("fail")
		k.clock.missed.Store(int64(2 * time.Hour))
		after(time.Second)
		for range 60 {
			k.Refused()
			after(time.Second)
		}
		if n := len(s.requests()); n < 5 || n > 7 {
			t.Errorf("%d requests in a minute of refusals", n)
		}
	})
}
