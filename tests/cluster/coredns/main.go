// coredns with the plugins that kubeadm's Corefile names, for a machine that has no DNS upstream.
//
// "forward" is replaced by a plugin that says at once that a name does not exist, and "loop" by nothing. The real
// forward would wait for an upstream that never answers, and slurmctld, which looks its peers up in reverse, stalls
// for as long. Doing it here spares every cluster the edit of its Corefile and a second start of its DNS.
package main

import (
	"context"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	"github.com/miekg/dns"
)

// nowhere answers every name with NXDOMAIN.
type nowhere struct{}

func (nowhere) Name() string { return "forward" }

func (nowhere) ServeDNS(_ context.Context, w dns.ResponseWriter, request *dns.Msg) (int, error) {
	answer := new(dns.Msg)
	answer.SetRcode(request, dns.RcodeNameError)
	return dns.RcodeNameError, w.WriteMsg(answer)
}

// skip reads the directive and its block and keeps nothing of them.
func skip(c *caddy.Controller) {
	for c.Next() {
		for c.NextArg() || c.NextBlock() {
		}
	}
}

func main() {
	plugin.Register("forward", func(c *caddy.Controller) error {
		skip(c)
		dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return nowhere{} })
		return nil
	})
	plugin.Register("loop", func(c *caddy.Controller) error {
		skip(c)
		return nil
	})
	dnsserver.Directives = []string{
		"reload", "health", "ready", "prometheus", "errors", "loop", "cache", "loadbalance", "kubernetes", "forward",
	}
	coremain.Run()
}
