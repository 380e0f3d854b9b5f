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

// advance lets d pass on the fake clock, and waits until all goroutines are blocked.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestRenewsBeforeExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		r := startRotator(t, s, Config{Renew: true})
		advance(time.Hour)
		if n := len(s.requests()); n != 0 {
			t.Fatalf("%d requests before a template was set", n)
		}
		r.SetTemplate(nodeTemplate("n"))
		advance(10 * time.Second)
		first := r.Current()
		if first == nil {
			t.Fatal("no certificate was issued:", r.logged())
		}
		<-r.Ready()
		advance(47 * time.Minute)
		if r.Current() != first {
			t.Error("renewed before 80 % of its lifetime")
		}
		advance(2 * time.Minute)
		second := r.Current()
		if second == first {
			t.Fatal("not renewed after 80 % of its lifetime")
		}
		stored, err := r.store.Current()
		if err != nil || !stored.Leaf.Equal(second.Leaf) {
			t.Errorf("stored certificate is not the current one: %v", err)
		}
		if r.changed != 2 || len(r.ages) != 1 || r.ages[0].Round(time.Minute) != 48*time.Minute || r.failed != 0 {
			t.Errorf("%d changes, ages %v, %d failures", r.changed, r.ages, r.failed)
		}
		if n := len(s.requests()); n != 2 || !slices.Equal(r.bootstrapRequests, []int{1}) {
			t.Errorf("of %d requests %v used the bootstrap client, want the first of two", n, r.bootstrapRequests)
		}
	})
}

func TestWithoutRenewRequestsAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		r := startRotator(t, s, Config{})
		r.SetTemplate(nodeTemplate("n"))
		advance(59 * time.Minute)
		if n := len(s.requests()); n != 1 {
			t.Errorf("%d requests while the certificate was valid", n)
		}
		advance(2 * time.Minute)
		if n := len(s.requests()); n != 2 || r.validCurrent() == nil {
			t.Errorf("%d requests after it expired: %s", n, r.describeCurrent())
		}
		if !slices.Equal(r.bootstrapRequests, []int{1, 2}) {
			t.Errorf("requests %v used the bootstrap client, want both: the certificate had expired", r.bootstrapRequests)
		}
	})
}

// The counts are for one hour: requests back off by 2, 4, 8 … seconds up to the longest pause.
func TestFailuresBackOff(t *testing.T) {
	for name, c := range map[string]struct {
		decision     string
		min, max     int
		errorText    string
		recoveryTime time.Duration
		// NotIssued is called for the first time between these.
		noReportBefore, reportedAfter time.Duration
	}{
		"api_server_is_unreachable": {"fail", 100, 115, "connection refused", 34 * time.Second, reportInterval - time.Second, reportInterval + 36*time.Second},
		"request_is_denied":         {"deny", 15, 20, "denied, reason: Stranger, message: who is that", 6 * time.Minute, 0, time.Second},
		"request_is_not_approved":   {"wait", 4, 5, "certificate request csr-1", 21 * time.Minute, approvalTimeout - time.Second, approvalTimeout + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSigner(t)
				s.set(c.decision)
				r := startRotator(t, s, Config{Renew: true})
				r.SetTemplate(nodeTemplate("n"))
				advance(c.noReportBefore)
				if reports := r.failureReports(); c.noReportBefore > 0 && len(reports) != 0 {
					t.Errorf("failures reported before %s: %q", c.noReportBefore, reports)
				}
				advance(c.reportedAfter - c.noReportBefore)
				if reports := r.failureReports(); len(reports) != 1 || !strings.HasPrefix(reports[0], "test certificate: ") || !strings.Contains(reports[0], c.errorText) {
					t.Errorf("failures reported after %s: %q", c.reportedAfter, reports)
				}
				advance(time.Hour - c.reportedAfter)
				if n := len(r.failureReports()); n < 3 || n > 12 {
					t.Errorf("%d failures reported in an hour", n)
				}
				if n := len(s.requests()); n < c.min || n > c.max {
					t.Errorf("%d requests in an hour, want %d to %d", n, c.min, c.max)
				}
				if log := r.logged(); !strings.Contains(log, c.errorText) || !strings.Contains(log, "current=none") {
					t.Errorf("log: %s", log)
				}
				s.set("approve")
				advance(c.recoveryTime)
				if r.Current() == nil {
					t.Errorf("no certificate %s after requests are approved", c.recoveryTime)
				}
			})
		})
	}
}

// A signer may backdate certificates by more than their lifetime.
func TestBackdatedShortLivedCertificateIsNotRenewedInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.lifetime, s.backdate = 30*time.Second, 5*time.Minute
		r := startRotator(t, s, Config{Renew: true})
		r.SetTemplate(nodeTemplate("n"))
		for range 20 {
			advance(15 * time.Second)
			if r.validCurrent() == nil {
				t.Fatal("certificate expired before it was renewed")
			}
		}
		if n := len(s.requests()); n < 10 || n > 21 {
			t.Errorf("%d requests in 5 minutes", n)
		}
	})
}

func TestIssuedCertificateDoesNotMatchTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.edit = func(c *x509.Certificate) { c.IPAddresses = nil }
		r := startRotator(t, s, Config{Renew: true})
		template := nodeTemplate("n")
		template.IPAddresses = []net.IP{net.ParseIP("10.0.0.1")}
		r.SetTemplate(template)
		advance(time.Hour)
		if n := len(s.requests()); n < 10 || n > 20 {
			t.Errorf("%d requests in an hour", n)
		}
		if r.Current() == nil || !strings.Contains(r.logged(), "address 10.0.0.1 is missing") {
			t.Error(r.logged())
		}
	})
}

func TestTemplateChangesDuringRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.set("wait")
		r := startRotator(t, s, Config{Renew: true})
		r.SetTemplate(nodeTemplate("old"))
		advance(10 * time.Second)
		s.set("approve")
		r.SetTemplate(nodeTemplate("new"))
		advance(10 * time.Second)
		if c := r.Current(); c == nil || c.Leaf.Subject.CommonName != "system:node:new" {
			t.Errorf("certificate %v: %s", c, r.logged())
		}
		r.SetTemplate(nodeTemplate("new"))
		advance(10 * time.Second)
		if n := len(s.requests()); n != 2 || r.failed != 0 {
			t.Errorf("%d requests, %d failures", n, r.failed)
		}
	})
}

// A request that was created with a certificate cannot be watched after the certificate expires.
func TestCertificateExpiresDuringRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		r := startRotator(t, s, Config{Renew: true})
		r.SetTemplate(nodeTemplate("n"))
		advance(10 * time.Second)
		s.set("wait")
		advance(59 * time.Minute)
		s.set("approve")
		advance(2 * time.Minute)
		if !strings.Contains(r.logged(), "certificate request csr-2: neither approved nor denied in 12m0s") {
			t.Error(r.logged())
		}
		if r.validCurrent() == nil {
			t.Fatal("no valid certificate after requests are approved: ", r.logged())
		}
		if last := len(s.requests()); !slices.Contains(r.bootstrapRequests, last) {
			t.Errorf("requests %v used the bootstrap client, want the last, %d: the certificate had expired", r.bootstrapRequests, last)
		}
	})
}

func TestStoredCertificateOfAnotherProgramIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		r := startRotator(t, s, Config{Renew: true})
		r.SetTemplate(nodeTemplate("n"))
		advance(10 * time.Second)
		s.set("fail")
		advance(2 * time.Hour)
		cert, key := s.newPair("n", time.Hour)
		if _, err := r.store.Update(cert, key); err != nil {
			t.Fatal(err)
		}
		advance(retryMax + retryMax/10)
		if r.validCurrent() == nil || r.changed != 2 {
			t.Errorf("%s, %d changes", r.describeCurrent(), r.changed)
		}
	})
}

// suspendClock is the clock of a machine that was suspended: the wall clock advanced, timers did
// not.
type suspendClock struct {
	clock.RealClock
	suspended atomic.Int64 // nanoseconds
}

func (c *suspendClock) Now() time.Time { return time.Now().Add(time.Duration(c.suspended.Load())) }

func TestRecheckReadsStoreAndExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		r := startRotator(t, s, Config{Renew: true})
		r.SetTemplate(nodeTemplate("n"))
		advance(time.Second)
		r.Recheck()
		advance(time.Second)
		if n := len(s.requests()); n != 1 {
			t.Errorf("%d requests after a recheck of a valid certificate, want 1", n)
		}

		cert, key := s.newPair("n", time.Hour)
		if _, err := r.store.Update(cert, key); err != nil {
			t.Fatal(err)
		}
		r.Recheck()
		advance(time.Second)
		if r.changed != 2 || len(s.requests()) != 1 {
			t.Errorf("replaced certificate is not in use: %d changes, %d requests", r.changed, len(s.requests()))
		}

		s.set("fail")
		r.clock.suspended.Store(int64(2 * time.Hour))
		advance(time.Second)
		for range 60 {
			r.Recheck()
			advance(time.Second)
		}
		if n := len(s.requests()); n < 5 || n > 7 {
			t.Errorf("%d requests in a minute of rechecks", n)
		}
	})
}

// No one rejects a certificate that is still valid, so that nothing calls Recheck.
func TestRenewsBeforeExpiryAfterSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		r := startRotator(t, s, Config{Renew: true})
		r.SetTemplate(nodeTemplate("n"))
		advance(time.Second)
		r.clock.suspended.Store(int64(48 * time.Minute))
		advance(11 * time.Minute)
		if n := len(s.requests()); n != 2 || !slices.Equal(r.bootstrapRequests, []int{1}) {
			t.Errorf("of %d requests %v used the bootstrap client, want the first of two: %s", n, r.bootstrapRequests, r.describeCurrent())
		}
	})
}
