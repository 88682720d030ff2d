// To be compiled, not run: templates that make the compiler work.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

// A key of its own for every number, so that each container below is instantiated again.
template <int N>
struct Key {
  int value = N;
  bool operator<(const Key &other) const { return value < other.value; }
  bool operator==(const Key &other) const { return value == other.value; }
};

template <int N>
struct Hash {
  std::size_t operator()(const Key<N> &key) const { return std::hash<int>()(key.value + N); }
};

template <int N>
int use_containers(int start) {
  std::map<Key<N>, std::vector<std::string>> ordered;
  std::unordered_map<Key<N>, std::tuple<int, double, std::string>, Hash<N>> hashed;
  std::set<std::pair<Key<N>, int>> pairs;
  for (int i = start; i < start + N; i++) {
    ordered[Key<N>{i % 7}].push_back(std::to_string(i));
    hashed.emplace(Key<N>{i}, std::make_tuple(i, i * 0.5, std::string("x")));
    pairs.emplace(Key<N>{i % 5}, i);
  }
  auto sum = std::accumulate(ordered.begin(), ordered.end(), 0, [](int so_far, const auto &entry) {
    return so_far + static_cast<int>(entry.second.size()) + entry.first.value;
  });
  std::vector<std::pair<Key<N>, int>> sorted(pairs.begin(), pairs.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
  return sum + static_cast<int>(hashed.size() + sorted.size());
}

template <int N>
int use_variant(int which) {
  std::variant<int, std::string, std::vector<Key<N>>, std::shared_ptr<Key<N>>> value = which;
  if (which % 2 == 0) value = std::make_shared<Key<N>>();
  std::function<int(int)> visit = [&value](int more) {
    return more + std::visit([](const auto &held) { return static_cast<int>(sizeof held); }, value);
  };
  return visit(N);
}

template <int... Numbers>
int use_all(int start, std::integer_sequence<int, Numbers...>) {
  return ((use_containers<Numbers + 1>(start) + use_variant<Numbers>(start)) + ...);
}

}  // namespace

int count_words(const std::string &text) {
  static const std::regex word("([a-z]+)([0-9]*)", std::regex::icase);
  std::map<std::string, int> counts;
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) counts[(*at)[1]]++;
  std::ostringstream out;
  for (const auto &[name, count] : counts) out << name << count;
  return static_cast<int>(out.str().size());
}

int use_everything(int start) { return use_all(start, std::make_integer_sequence<int, INSTANCES>()); }
