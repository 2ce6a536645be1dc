//! Expressions in, what they cost out: numbers that clients know.

use revisor_object::parse_json;
use revisor_schema::Structural;

use super::Range;
use crate::{Environment, SchemaType};

const SCHEMA: &str = r#"{"type":"object","required":["s"],"properties":{
    "s":{"type":"string","maxLength":10},
    "t":{"type":"string"},
    "e":{"type":"string","enum":["aa","bbbb"]},
    "i":{"type":"integer"},
    "by":{"type":"string","format":"byte","maxLength":7},
    "ts":{"type":"string","format":"date-time"},
    "any":{"x-kubernetes-int-or-string":true},
    "ls":{"type":"array","maxItems":6,"items":{"type":"string","maxLength":5}},
    "lt":{"type":"array","items":{"type":"string"}},
    "li":{"type":"array","maxItems":9,"items":{"type":"integer"}},
    "ll":{"type":"array","maxItems":3,"items":{"type":"array","maxItems":4,"items":{"type":"string"}}},
    "ms":{"type":"object","maxProperties":5,"additionalProperties":{"type":"string","maxLength":8}},
    "mt":{"type":"object","additionalProperties":{"type":"string"}},
    "o":{"type":"object","properties":{
        "s":{"type":"string","maxLength":2},"namespace":{"type":"string","maxLength":4}}},
    "lo":{"type":"array","maxItems":5,"items":{"type":"object","properties":{
        "list":{"type":"array","maxItems":7,"items":{"type":"string","maxLength":3}},
        "other":{"type":"string","maxLength":1000}}}}}}"#;

fn estimate(text: &str) -> Range {
    let parsed = parse_json(SCHEMA.as_bytes()).expect("is JSON").value;
    let schema = Structural::read(parsed.as_object().expect("is an object"));
    let schema = SchemaType::of(&schema, false).expect("expressions can speak of it");
    let environment = Environment::new("1.36".parse().expect("a release"))
        .with_schema("t", &schema)
        .with_variable("self", schema.kind("t"))
        .with_variable("oldSelf", schema.kind("t"));
    match environment.compile(text) {
        Ok(program) => program.estimate_cost(Some(&schema)),
        Err(issues) => panic!("{text}: {issues}"),
    }
}

#[test]
fn expressions_cost_what_they_cost_everywhere() {
    for (text, min, max) in [
        ("true", 0, 0),
        ("self.s == 'a'", 3, 3),
        ("self.s == self.t", 5, 8),
        ("self.t == self.t", 5, 314_577),
        ("self.s != oldSelf.s", 5, 8),
        ("self.s < self.o.s", 6, 6),
        ("self.i > 3", 3, 3),
        ("self.i == oldSelf.i", 4, 4),
        ("has(self.s)", 1, 1),
        ("has(self.o.s) && self.o.s == 'x'", 2, 6),
        ("self.o.namespace == 'abcd'", 4, 4),
        ("self.o.__namespace__ == 'abcd'", 4, 4),
        ("self.s.startsWith('abcdefghijklmn')", 4, 4),
        ("self.s.contains('abcdefghijklmn')", 2, 10),
        ("self.t.matches('^[a-z]+$')", 4, 629_148),
        ("matches(self.t, '^[a-z]+$')", 3, 3),
        ("self.t.find('a') == 'a'", 4, 314_576),
        ("self.t.findAll('a').size() == 1", 5, 314_577),
        ("self.s in ['a', 'bc']", 14, 14),
        ("self.s in self.ms", 5, 5),
        ("self.i in self.li", 4, 13),
        ("self.ls.all(x, x != 'a')", 3, 33),
        ("self.lt.exists(x, x == 'abcdefghijklmnop')", 3, 7_340_028),
        ("self.li.exists_one(x, x == 1)", 4, 31),
        ("self.ls.map(x, x + 'a').size() < 3", 15, 111),
        ("self.ls.filter(x, x == 'a').all(x, x == 'abcdefghijklmn')", 14, 128),
        ("self.ms.all(k, k == 'a')", 3, 23),
        ("self.ms.all(k, self.ms[k] == 'abcdefgh')", 3, 43),
        ("self.ms.all(k, v, k == v)", 3, 28),
        ("self.ls.all(i, v, v == 'aaaaaaaaaaaaa' && i > 0)", 3, 51),
        ("self.lo.all(x, x.list.all(y, y != 'a'))", 3, 208),
        ("self.lo.all(x, x.list.all(y, x.other != y))", 3, 160_033),
        ("self.lt.all(x, self.lt.all(y, x == y))", 3, 345_881_509_131_242_703),
        ("['a', 'b'].all(x, x == self.t)", 17, 23),
        ("[1, 2].map(x, x * 2) == [2, 4]", 60, 60),
        ("{'a': 'bcd'}.all(k, k == 'abcdefghijkl')", 34, 35),
        ("self.ms.transformMap(k, v, v + 'a').size() > 1", 35, 75),
        ("self.ms.transformList(k, v, v)[0] == 'aaaaaaaaaaaaaaaaaa'", 15, 81),
        ("self.ls.sort() == self.ls", 16, 92),
        ("self.li.sort() == self.li", 16, 178),
        ("self.ls.sortBy(x, size(x))[0] == 'a'", 37, 193),
        ("self.ls.distinct().size() == 2", 15, 87),
        ("self.ls.reverse().slice(0, 2).size() == 2", 28, 34),
        ("self.ll.flatten().size() == 2", 15, 18),
        ("lists.range(5).size() == 5", 18, 18),
        ("lists.range(self.i).size() == 5", u64::MAX, u64::MAX),
        ("self.ls.isSorted()", 2, 20),
        ("self.li.sum() == 2", 3, 12),
        ("self.lt.max() == 'a'", 3, 329_854_432_053),
        ("self.ls.indexOf('a') == 1", 3, 21),
        ("self.t.indexOf('a') == 1", 3, 314_576),
        ("self.ls.join(', ') == 'a'", 3, 16),
        ("self.t.split('').size() == 1", 4, 629_150),
        ("self.t.split('', 3).all(x, x == 'a')", 3, 629_161),
        ("self.s.replace('a', 'bc') == 'a'", 3, 11),
        ("self.s.replace('', 'bc') == 'a'", 3, 11),
        ("self.s.lowerAscii().trim().substring(1) == 'a'", 3, 15),
        ("self.s + self.o.s + 'abc' == 'abcdefghijklmnop'", 7, 18),
        ("self.ls + ['a'] == self.ls", 16, 16),
        ("'%s'.format([self.s]) == self.s", 16, 19),
        ("strings.quote(self.s) == 'abcdefghijklmnopqrstuvwxyz'", 3, 9),
        ("string(bytes(self.s)) == self.s", 5, 28),
        ("self.by == b'abcdefghijk'", 3, 3),
        ("self.ts < timestamp('2024-01-01T00:00:00Z')", 4, 4),
        ("string(self.i) == 'a'", 4, 4),
        ("type(self.any) == string ? self.any == 'a' : self.any > 3", 7, 7),
        ("(self.i > 1 ? self.ls : self.lt).all(x, x == 'a')", 6, 4_194_306),
        ("self.ls[0] == 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", 4, 5),
        ("self.ms['a'] == 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", 4, 7),
        ("dyn(self.ls)[0] == 'a'", 4, 4),
        ("self.?s.orValue('abcdefghijklm') == 'abcdefghijkl'", 4, 5),
        ("self.?s.optMap(x, x + 'a').hasValue()", 5, 1_844_674_407_370_955_283),
        ("sets.contains(self.ls, ['a', 'b'])", 13, 25),
        ("sets.equivalent(self.ls, self.lt)", 5, 12_582_905),
        ("url(self.s) == url(self.t)", 5, 629_154),
        ("url(self.s).getHost() == 'a'", 4, 8),
        ("isURL(self.t)", 3, 3),
        ("isIP(self.s) && ip(self.s).family() == 4", 2, 14),
        ("ip.isCanonical(self.t)", 2, 629_148),
        ("ip(self.s) == cidr(self.s).ip()", 6, 14),
        ("cidr(self.s).containsIP(self.t)", 5, 314_585),
        ("cidr(self.s).containsCIDR(cidr(self.t))", 7, 314_588),
        ("quantity(self.s).isGreaterThan(quantity('1Gi'))", 4, 8),
        ("quantity(self.s) == quantity(self.t)", 5, 314_582),
        ("semver(self.s).major() == 1", 4, 8),
        ("format.dns1123Label().validate(self.s).hasValue()", 4, 132),
        ("format.named(self.s) == format.named(self.t)", 7, 1_844_674_407_370_955_270),
        ("oldSelf.o.?s.hasValue() || self.i > 1", 4, 7),
    ] {
        assert_eq!(estimate(text), Range { min, max }, "{text}");
    }
}

#[test]
fn without_a_schema_nothing_is_known_of_sizes() {
    let environment = Environment::new("1.36".parse().expect("a release")).with_variable("object", crate::Type::Dyn);
    for (text, min, max) in
        [("object.spec.replicas > 3", 2, 2), ("object.name == 'abc'", 2, 2), ("object.items.all(x, x)", 2, u64::MAX)]
    {
        let program = environment.compile(text).expect(text);
        assert_eq!(program.estimate_cost(None), Range { min, max }, "{text}");
    }
}
