"""What a home has, for templates that leave it open: rooms, devices, things to say and to buy."""

ROOMS = (
    *("attic", "balcony", "basement", "bathroom", "bedroom", "cellar", "dining room", "driveway"),
    *("garage", "garden", "guest room", "hallway", "kids room", "kitchen", "laundry room"),
    *("library", "living room", "lobby", "nursery", "office", "pantry", "porch", "studio"),
    *("terrace", "workshop"),
)
FLOORS = ("first", "second", "third", "ground", "upper", "lower", "top", "main")
ZONES = ("home", "work", "school", "the gym", "the office", "grandma's house")
# By the domain of a device, as Home Assistant calls it.
DEVICES = {
    "light": ("desk lamp", "ceiling light", "bedside lamp", "chandelier", "fairy lights"),
    "cover": ("garage door", "roller shutter", "left curtain", "awning", "bay window blind"),
    "fan": ("ceiling fan", "tower fan", "extractor fan"),
    "lock": ("front door", "back gate", "patio lock"),
    "media_player": ("soundbar", "kitchen speaker", "television", "record player"),
    "climate": ("thermostat", "heat pump", "air conditioner"),
    "vacuum": ("robot vacuum", "dusty", "hall cleaner"),
    "lawn_mower": ("lawn mower", "grass cutter"),
    "todo": ("weekend list", "chores", "packing list", "project list"),
    "person": ("Anna", "Peter", "Maria", "Tom"),
    "scene": ("movie night", "romantic dinner", "wake up"),
    "script": ("party time", "good night routine", "leave home"),
    "weather": ("weather station", "Berlin", "home forecast"),
    "valve": ("sprinkler", "water main"),
    "sensor": ("outdoor temperature", "rain gauge", "battery level", "power meter"),
    "binary_sensor": ("motion detector", "smoke alarm", "phone charger", "water leak sensor"),
}
ANY_DEVICE = ("coffee machine", "heater", "pump", "aquarium", "humidifier", "Christmas tree")
# What a person says freely, by the name of the slot.
WILDCARDS = {
    "message": (
        *("dinner is ready", "we leave in ten minutes", "the parcel has come", "bedtime"),
        *("someone is at the door", "please come downstairs"),
    ),
    "search_query": (
        *("the planets", "some smooth jazz", "abbey road", "bohemian rhapsody", "piano music"),
        *("morning news", "nina simone"),
    ),
    "zone": ZONES,
    "timer_name": ("pizza", "laundry", "tea", "homework", "bread", "egg", "workout"),
    "timer_command": (
        *("turn off the lights", "open the blinds", "lock the front door", "stop the music"),
        *("switch on the heater", "start the vacuum"),
    ),
    "shopping_list_item": ("milk", "eggs", "two lemons", "olive oil", "flour", "paper towels"),
    "todo_list_item": ("call the plumber", "water the plants", "pay the rent", "buy tickets"),
}
